def g(x):
    logger.info('of %s', x)
    return x + 1

def f(x):
    return torch.vmap(g)(x)

# becomes

def g(x):
    return x + 1

def f(x):
    logger.info('of %s', x)
    return torch.vmap(g)(x)
