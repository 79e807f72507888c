//go:build linux || darwin

package proc

import "golang.org/x/sys/unix"

func mapped(fd, size int) (*Shared, error) {
	b, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return &Shared{bytes: b}, nil
}

func unmap(b []byte) error {
	if b == nil {
		return nil
	}
	return unix.Munmap(b)
}
