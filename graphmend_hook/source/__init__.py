"""What rules may ask about code: scopes, names, opt-outs.  Imports no rule."""
