package testkit_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/workerlink/supervisor/internal/task"
	"github.com/workerlink/supervisor/internal/testkit"
)

// fakeTest is a test that may fail without failing the one that looks at it.
type fakeTest struct {
	testing.TB
	errors  []string
	cleanup []func()
}

func (f *fakeTest) Helper()          {}
func (f *fakeTest) Cleanup(c func()) { f.cleanup = append(f.cleanup, c) }
func (f *fakeTest) FailNow()         { f.Fatalf("FailNow") }

func (f *fakeTest) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

// Fatalf ends the goroutine, as a test's does.
func (f *fakeTest) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	panic(fatal{})
}

// fatal stands for the end of a fake test.
type fatal struct{}

// runFake runs a test and its clean-up and returns what it complained about.
func runFake(t *testing.T, test func(t testing.TB)) []string {
	t.Helper()
	f := &fakeTest{TB: t}
	task.Go(func(context.Context) {
		defer func() {
			if v := recover(); v != nil && v != (fatal{}) {
				panic(v)
			}
		}()
		test(f)
	}).Wait()
	// Most fake tests leave something behind for good, so there is no use in waiting long for its end.
	before := testkit.SetLeakWait(300 * time.Millisecond)
	defer testkit.SetLeakWait(before)
	for _, c := range slices.Backward(f.cleanup) {
		c()
	}
	return f.errors
}
