//go:build !linux && !darwin

package proc

import "os"

func sharedFile() (*os.File, error)    { return nil, ErrUnsupported }
func mapped(int, int) (*Shared, error) { return nil, ErrUnsupported }
func unmap([]byte) error               { return nil }
