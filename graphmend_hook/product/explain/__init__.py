"""What Dynamo does with a program, without the hook and with it, joined with what the hook says of each break."""
