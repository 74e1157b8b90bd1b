"""What a user can do with Baton, one module for each task.

The command line, the Python interface, the pytest plug-in and the workers of backends call the
same functions. Nothing here prints or asks: messages for the user go to a callback.
"""
