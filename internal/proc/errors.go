package proc

import "errors"

// ErrUnsupported is returned for what the system at hand cannot do.
var ErrUnsupported = errors.New("supervisor: not supported on this system")
