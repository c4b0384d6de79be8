def f(x, scale):
    logger.info('of %s', scale)
    return x * locals()['scale']

# becomes

def f(x, scale):
    logger.info('of %s', scale)
    return x * scale
