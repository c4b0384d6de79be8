def warning(text, **options):
    logger.warning(text, **options)

def f(x):
    warning('in f', exc_info=True)
    return x + 1

# becomes

def warning(text, **options):
    logger.warning(text, **options)

def f(x):
    warning('in f')
    return x + 1
