package proc

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"
)

// Shared is memory that a host and a worker see at once. It has no name, so nothing of it is left when both are gone,
// however they ended. [NewShared] makes it; its file goes to the worker, which calls [MapShared].
type Shared struct {
	file  *os.File // nil in a worker
	bytes []byte
}

// NewShared returns zeroed shared memory of size bytes.
func NewShared(size int) (*Shared, error) {
	file, err := sharedFile()
	if err != nil {
		return nil, fmt.Errorf("supervisor: shared memory: %w", err)
	}
	if err = file.Truncate(int64(size)); err == nil {
		var s *Shared
		if s, err = mapped(int(file.Fd()), size); err == nil {
			s.file = file
			return s, nil
		}
	}
	return nil, fmt.Errorf("supervisor: shared memory: %w", errors.Join(err, file.Close()))
}

// MapShared returns, in a worker, the memory behind the file that it got as descriptor fd, and closes that.
func MapShared(fd, size int) (*Shared, error) {
	file := os.NewFile(uintptr(fd), "shared memory")
	if file == nil {
		return nil, fmt.Errorf("supervisor: shared memory: no descriptor %d", fd)
	}
	s, err := mapped(fd, size)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("supervisor: shared memory: %w", err)
	}
	return s, nil
}

// File is what a worker inherits. It stays the Shared's.
func (s *Shared) File() *os.File { return s.file }

// Bytes is the memory from the byte from on. It must not be used after Close.
func (s *Shared) Bytes(from int) []byte { return s.bytes[from:] }

// Words is the beginning of the memory as n words of 4 bytes, for what both sides change. It must not be used after Close.
func (s *Shared) Words(n int) []atomic.Uint32 {
	_ = s.bytes[4*n-1]
	return unsafe.Slice((*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(s.bytes))), n)
}

// Close gives the memory back, on this side.
func (s *Shared) Close() error {
	err := unmap(s.bytes)
	s.bytes = nil
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
	}
	return err
}
