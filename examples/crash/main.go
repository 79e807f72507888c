// Command crash lets a worker process die of a segmentation fault, shows what
// the host is told of it, and calls the worker again.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"unsafe"

	"github.com/workerlink/supervisor"
)

// Model has a bug that no recover catches.
type Model struct{ weight int }

// Weight is a call without a fault.
func (m *Model) Weight() int { return m.weight }

// Train stores to an address where there is nothing.
func (m *Model) Train() { *(*int)(unsafe.Add(unsafe.Pointer(m), 1<<44)) = 1 }

var newModel = supervisor.Define("crash.Model",
	func(context.Context) (*Model, error) { return &Model{weight: 10}, nil })

func main() {
	supervisor.Init() // first line: in a worker process it serves and never returns
	ctx := context.Background()
	sup, err := supervisor.New(supervisor.Process)
	check(err)
	id, err := sup.Register(ctx, newModel)
	check(err)
	check(sup.StartLink(ctx))
	defer func() { check(sup.Shutdown(ctx)) }()

	_, err = supervisor.Call[any](ctx, sup, id, "Train")
	fmt.Println(err)
	if exit, ok := errors.AsType[*supervisor.ExitError](err); ok { // it has the Go runtime's trace
		for line := range strings.Lines(exit.Trace) {
			if strings.Contains(line, ".(*Model).") {
				fmt.Print("the trace names ", line)
				break
			}
		}
	}
	weight, err := supervisor.Call[int](ctx, sup, id, "Weight") // by the worker's next life
	check(err)
	fmt.Println("the next call works:", weight)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
