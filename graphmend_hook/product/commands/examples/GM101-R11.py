def f(x):
    start = time.perf_counter()
    x = x + 1
    logger.info('%s s', time.perf_counter() - start)
    return x

# becomes

def f(x):
    return x + 1

def timed(compiled, x):
    start = time.perf_counter()
    x = compiled(x)
    logger.info('%s s', time.perf_counter() - start)
    return x
