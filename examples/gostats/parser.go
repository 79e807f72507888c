package main

import (
	"context"
	"io/fs"
	"syscall"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/examples/internal/gosource"
)

// Parser is what runs in a worker.
type Parser struct{}

// Parse counts one file. Its error is for a file that cannot be read.
func (Parser) Parse(path string) (gosource.File, error) { return gosource.Parse(path) }

var parser = supervisor.Define("gostats.Parser",
	func(context.Context) (Parser, error) { return Parser{}, nil })

// init lets the errors of files keep their type on the way from a worker, so that the table can tell the reason from the
// path. The reason itself stands in an interface field and so needs its type named too.
func init() {
	supervisor.RegisterErrorType[*fs.PathError]("fs.PathError")
	supervisor.RegisterType[syscall.Errno]()
}
