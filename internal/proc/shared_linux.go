package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

func sharedFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("supervisor", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	return os.NewFile(uintptr(fd), "shared memory"), nil
}
