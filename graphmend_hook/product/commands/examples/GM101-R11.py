def f(x):
    start = datetime.datetime.now()
    x = x + 1
    logger.info('%s', datetime.datetime.now() - start)
    return x

# becomes

def f(x):
    return x + 1

def timed(compiled, x):
    start = datetime.datetime.now()
    x = compiled(x)
    logger.info('%s', datetime.datetime.now() - start)
    return x
