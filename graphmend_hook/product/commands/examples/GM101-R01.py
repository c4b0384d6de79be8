def f(x):
    logger.info('in f', exc_info=True)
    return x + 1

# becomes

def f(x):
    logger.info('in f')
    return x + 1
