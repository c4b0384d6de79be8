def f(x):
    logger.warning('in f', stacklevel=2)
    return x + 1

# becomes

def f(x):
    logger.warning('in f')
    return x + 1
