package proc

import "runtime"

// Supported reports whether this system can start workers.
const Supported = runtime.GOOS == "linux" || runtime.GOOS == "darwin"
