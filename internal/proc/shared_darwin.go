package proc

import (
	"errors"
	"os"
)

// sharedFile is a file that has lost its name already.
func sharedFile() (*os.File, error) {
	f, err := os.CreateTemp("", "supervisor")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
