package faulttest_test

// What the model and the chaos work with: an object that does as it is told and enters each execution in a ledger, and the
// classes of what a request can end with.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// chaosMute is the name of children whose stdout is not theirs alone.
const chaosMute = "mute"

// toiler is the object.
type toiler struct{ ledger testkit.Ledger }

var newToiler = supervisor.DefineWith("faulttest.Toiler", func(_ context.Context, ledger string) (*toiler, error) {
	return &toiler{testkit.Ledger{Path: ledger}}, nil
})

var (
	errToil        = errors.New("toiler: told to fail")
	errToilStopped = errors.New("toiler: interrupted") // its ctx has ended
)

func init() {
	supervisor.RegisterError("faulttest.errToil", errToil)
	supervisor.RegisterError("faulttest.errToilStopped", errToilStopped)
}

// The ways in which a request ends. Those below the line end the process as well.
const (
	byValue = "value"
	byError = "error"
	byPanic = "panic"

	byExit  = "exit"  // with code 0
	byCrash = "crash" // a panic on another goroutine
)

// Toil is one request: it takes its time, unless its ctx ends, and ends as told.
func (w *toiler) Toil(ctx context.Context, id string, takes time.Duration, how string) (string, error) {
	if err := w.ledger.Enter(id); err != nil {
		return "", err
	}
	if err := toilFor(ctx, takes); err != nil {
		return "", err
	}
	switch how {
	case byError:
		return "", fmt.Errorf("%s: %w", id, errToil)
	case byPanic:
		panic(id)
	case byExit:
		os.Exit(0)
	case byCrash:
		var elsewhere sync.WaitGroup
		elsewhere.Go(func() { panic(id) })
		elsewhere.Wait()
	}
	return receipt(ctx, id), nil
}

// Carry returns its load with the receipt at its end.
func (w *toiler) Carry(ctx context.Context, id string, load []byte) ([]byte, error) {
	if err := w.ledger.Enter(id); err != nil {
		return nil, err
	}
	return append(load[:len(load):len(load)], receipt(ctx, id)...), nil
}

// Shout writes so many bytes in lines of one length to stdout. In a goroutine child nobody hears it.
func (w *toiler) Shout(ctx context.Context, id string, size, line int) (string, error) {
	if err := w.ledger.Enter(id); err != nil {
		return "", err
	}
	if in, _ := supervisor.Self(ctx); in.Name == chaosMute {
		return receipt(ctx, id), nil
	}
	text := strings.Repeat("x", line-1) + "\n"
	for ; size > 0 && ctx.Err() == nil; size -= line {
		if _, err := os.Stdout.WriteString(text); err != nil {
			return "", err
		}
	}
	return receipt(ctx, id), nil
}

func toilFor(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errToilStopped, context.Cause(ctx))
	}
}

// receipt is what only the execution of this request in this life returns.
func receipt(ctx context.Context, id string) string {
	in, _ := supervisor.Self(ctx)
	return receiptOf(id, in.Incarnation)
}

func receiptOf(id string, incarnation uint64) string { return fmt.Sprintf("%s@%d", id, incarnation) }

// fate is a set of classes of what a request can end with, be it a verdict or a refusal.
type fate uint32

const (
	fateValue fate = 1 << iota
	fateRemote
	fateStopped
	fatePanic
	fateTimeout
	fateCanceled
	fateRestarted
	fateExit
	fateLimit
	fateClosed
	fatePending
	fateBusy
	fateDuplicate
	fateNoChild
	fateNoRequest
	fateStuck
	fateOther
)

// fates are the classes in the order in which they are recognised: an outer reason before what it wraps.
var fates = []struct {
	is   fate
	name string
	of   func(error) bool
}{
	{fateValue, "value", func(err error) bool { return err == nil }},
	{fatePanic, "panic", func(err error) bool { return errors.As(err, new(*supervisor.PanicError)) }},
	{fateStopped, "interrupted", fateIs(errToilStopped)},
	{fateRemote, "remote error", func(err error) bool { return errors.As(err, new(*supervisor.RemoteError)) }},
	{fatePending, "pending", fateIs(supervisor.ErrPending)},
	{fateLimit, "restart limit", fateIs(supervisor.ErrRestartLimit)},
	{fateRestarted, "restarted", fateIs(supervisor.ErrRestarted)},
	{fateClosed, "closed", fateIs(supervisor.ErrClosed)},
	{fateExit, "exit", func(err error) bool { return errors.As(err, new(*supervisor.ExitError)) }},
	{fateTimeout, "timeout", fateIs(supervisor.ErrTimeout)},
	{fateCanceled, "cancelled", fateIs(supervisor.ErrCanceled)},
	{fateBusy, "busy", fateIs(supervisor.ErrBusy)},
	{fateDuplicate, "duplicate", fateIs(supervisor.ErrDuplicateRequest)},
	{fateNoChild, "no such child", fateIs(supervisor.ErrNoSuchChild)},
	{fateNoRequest, "no such request", fateIs(supervisor.ErrNoSuchRequest)},
	{fateStuck, "stuck", func(err error) bool { return errors.As(err, new(*supervisor.StuckError)) }},
	{fateOther, "something else", func(error) bool { return true }},
}

func fateIs(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

// fateOf is the class of an error.
func fateOf(err error) fate {
	for _, f := range fates {
		if f.of(err) {
			return f.is
		}
	}
	return fateOther
}

// fateOfToil is what a way ends with if nothing happens to it.
func fateOfToil(how string) fate {
	switch how {
	case byError:
		return fateRemote
	case byPanic:
		return fatePanic
	case byExit, byCrash:
		return fateExit
	default:
		return fateValue
	}
}

func (f fate) String() string {
	var names []string
	for _, one := range fates {
		if f&one.is != 0 {
			names = append(names, one.name)
		}
	}
	return strings.Join(names, " or ")
}
