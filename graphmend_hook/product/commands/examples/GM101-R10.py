def f(x, training=False):
    number = np.random.uniform()
    if training and 0.5 > number:
        return x
    return x + 1

# becomes

def f(x, training=False):
    number = np.random.uniform()
    if training and number < 0.5:
        return x
    return x + 1
