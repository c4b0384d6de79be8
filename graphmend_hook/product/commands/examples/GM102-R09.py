def f(x):
    if x.sum() > 0:
        logger.info('positive', stack_info=True)
        x = x + 1
    return x

# becomes

def f(x):
    if x.sum() > 0:
        logger.info('positive')
        x = x + 1
    return x
