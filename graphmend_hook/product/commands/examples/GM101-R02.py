def f(x, y):
    seen = ('of %s', y)
    logger.info(*seen)
    return x + 1

# becomes

def f(x, y):
    logger.info('of %s', y)
    return x + 1
