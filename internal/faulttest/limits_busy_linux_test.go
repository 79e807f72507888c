package faulttest_test

// Starts in a host that has other things to do.

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
	"github.com/workerlink/supervisor/internal/testkit"
)

func TestC23StartsInBusyHost(t *testing.T) {
	for _, tt := range []struct {
		name  string
		tasks int
		do    func()
	}{
		{"C23", 1, runtime.GC}, // files that are collected would be bad descriptors
		{"C62", 100, func() { // locks that other threads hold in the moment of a fork
			log.New(io.Discard, "", log.LstdFlags).Printf("%d bytes", len(make([]byte, 64<<10)))
			runtime.Gosched()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			testkit.NoLeaks(t)
			files := len(openDescriptors(t))
			t.Cleanup(func() { // they have no other owner than the children's options
				testkit.Until(t, "the files of the test are collected", func() bool {
					runtime.GC()
					return len(openDescriptors(t)) == files
				})
			})
			over, busy := make(chan struct{}), sync.WaitGroup{}
			for range tt.tasks {
				busy.Go(func() {
					for {
						select {
						case <-over:
							return
						default:
							tt.do()
						}
					}
				})
			}
			startWithFiles(t, times(12, 1000))
			close(over)
			busy.Wait()
		})
	}
}

// startWithFiles starts that many workers, some at a time, each with a file of its own, and has them read it.
func startWithFiles(t *testing.T, starts int) {
	t.Helper()
	r := childtest.NewRig(t, childtest.Processes())
	r.StartLink(t)
	one := func(n int) error {
		id, err := registerWithFile(r.Ctx, r, fmt.Sprint("text ", n))
		if err != nil {
			return err
		}
		text, err := supervisor.Call[string](r.Ctx, r.Sup, id, "ReadFile", 6)
		if err != nil {
			return err
		}
		if want := fmt.Sprint("text ", n); text != want {
			return fmt.Errorf("worker %d has read %q", n, text)
		}
		return r.Sup.Unregister(r.Ctx, id)
	}
	numbers := make(chan int)
	errs := make(chan error, starts)
	var starters sync.WaitGroup
	for range 4 {
		starters.Go(func() {
			for n := range numbers {
				errs <- one(n)
			}
		})
	}
	for n := range starts {
		numbers <- n
	}
	close(numbers)
	starters.Wait()
	for range starts {
		require.NoError(t, <-errs, "a start in a busy host")
	}
}

// registerWithFile starts a worker with a file that nobody but its options knows once this has returned.
func registerWithFile(ctx context.Context, r *childtest.Rig, text string) (id int, err error) {
	from, to, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer to.Close()
	if _, err := to.WriteString(text); err != nil {
		return 0, err
	}
	return r.Kind.Register(ctx, r.Sup, r.Job(), supervisor.Proc{ExtraFiles: []*os.File{from}})
}
