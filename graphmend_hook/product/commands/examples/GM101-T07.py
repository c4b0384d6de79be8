warnings.filterwarnings('error', 'old')

def f(x):
    warnings.warn('slow')
    return x + 1

# becomes

warnings.filterwarnings('always', 'old')

def f(x):
    warnings.warn('slow')
    return x + 1
