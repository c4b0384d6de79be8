@functools.cache
def scale():
    logger.info('looked up')
    return 3

def f(x):
    return x * scale()

# becomes

@functools.cache
def scale():
    return 3

def f(x):
    logger.info('looked up')
    return x * scale()
