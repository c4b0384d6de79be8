def block(x, training):
    number = np.random.uniform()
    if training and number < 0.5:
        return x
    return x * 2

def f(x, training=False):
    return torch.utils.checkpoint.checkpoint(block, x, training, use_reentrant=False)

# becomes

def block(x, skip):
    if skip:
        return x
    return x * 2

def f(x, training=False):
    number = np.random.uniform()
    return torch.utils.checkpoint.checkpoint(block, x, training and number < 0.5, use_reentrant=False)
