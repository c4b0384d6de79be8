def f(x):
    logger.info('of %s', x)
    return x + 1

# becomes

def f(x):
    logger.info('of %s', x.detach())
    return x + 1
