adapter = logging.LoggerAdapter(logger, {'layer': 0})

def f(x):
    for layer in range(2):
        adapter.extra['layer'] = layer
        adapter.info('in a layer')
        x = x + layer
    return x

# becomes

adapters = [logging.LoggerAdapter(logger, {'layer': layer}) for layer in range(2)]

def f(x):
    for layer in range(2):
        adapters[layer].info('in a layer')
        x = x + layer
    return x
