"""Why did nothing happen?  The checks of ``graphmend doctor``, each of which gives findings."""
