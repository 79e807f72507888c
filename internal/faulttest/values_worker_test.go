package faulttest_test

// The worker of the tests of values, and the types that only they know.

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"math/big"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/childtest"
)

type (
	// valuesChain can be as deep as one likes, and contain itself.
	valuesChain struct {
		V    int
		Next *valuesChain
		More map[string]*valuesChain
		Any  any
	}
	valuesPoint struct{ X, Y int }
	// valuesBox is where gob's rules hold.
	valuesBox struct {
		Pointer *int
		Point   *valuesPoint
		Points  []*valuesPoint
		Slice   []int
		Map     map[string]int
		Float   float64
		Time    time.Time
		Any     any
		Big     *big.Int
		Text    string
		Nothing struct{}
	}
	// valuesLeaky has what a copy would lack.
	valuesLeaky struct {
		N    int
		Chan chan int
		Func func()
	}
	valuesHere  struct{ N int } // known to the host, but not to a worker that is told so
	valuesThere struct{ N int } // the other way round
)

// valuesOddError is registered, but cannot cross when it holds what nobody knows.
type valuesOddError struct{ Detail any }

func (e *valuesOddError) Error() string { return fmt.Sprintf("odd: %v", e.Detail) }

// valuesVariable tells a worker to start in an odd way.
const valuesVariable = "FAULTTEST_VALUES"

// valuesOdd makes a child's workers start in an odd way.
func valuesOdd(how string) supervisor.Proc {
	return supervisor.Proc{Env: []string{valuesVariable + "=" + how}}
}

func init() {
	supervisor.RegisterType[valuesPoint]()
	supervisor.RegisterType[valuesChain]()
	supervisor.RegisterType[valuesFragile]()
	supervisor.RegisterErrorType[*valuesOddError]("faulttest.valuesOddError")
	switch how := os.Getenv(valuesVariable); how {
	case "":
		supervisor.RegisterType[valuesHere]()
	case "other types":
		supervisor.RegisterType[valuesThere]()
	default:
		valuesOddStarts[how]()
	}
}

// valuesTwice is a name that is taken twice.
const valuesTwice = "faulttest.twice"

// valuesOddStarts are what a worker may be told to do before it serves.
var valuesOddStarts = map[string]func(){
	"print": func() { fmt.Println("printed by init") },
	"a factory twice": func() {
		for range 2 {
			supervisor.Define(valuesTwice, func(context.Context) (*valuesWorker, error) { return nil, nil })
		}
	},
	"an error twice": func() {
		for range 2 {
			supervisor.RegisterError(valuesTwice, errors.New("one of two"))
		}
	},
	"a type twice": func() {
		func() {
			type twice struct{ A int }
			supervisor.RegisterType[twice]()
		}()
		type twice struct{ B string }
		supervisor.RegisterType[twice]()
	},
	"a name of gob twice": func() {
		gob.RegisterName(valuesTwice, valuesPoint{})
		gob.RegisterName(valuesTwice, valuesBox{})
	},
}

// valuesWorker is the object of the tests of values. Methods without a word return their argument.
type valuesWorker struct {
	gate string
	kept []byte
}

var newValues = supervisor.DefineWith("faulttest.values", func(_ context.Context, gate string) (*valuesWorker, error) {
	return &valuesWorker{gate: gate}, nil
})

func (*valuesWorker) Int(v int) int                         { return v }
func (*valuesWorker) Any(v any) any                         { return v }
func (*valuesWorker) Box(v valuesBox) valuesBox             { return v }
func (*valuesWorker) Point(v valuesPoint) valuesPoint       { return v }
func (*valuesWorker) Bytes(v []byte) []byte                 { return v }
func (*valuesWorker) Chain(v *valuesChain) *valuesChain     { return v }
func (*valuesWorker) Channel(v chan int) chan int           { return v }
func (*valuesWorker) Func(v func()) func()                  { return v }
func (*valuesWorker) Leaky(v valuesLeaky) valuesLeaky       { return v }
func (*valuesWorker) Fragile(v valuesFragile) valuesFragile { return v }

// Nothing has no result.
func (*valuesWorker) Nothing() {}

// Nil has one.
func (*valuesWorker) Nil() any { return nil }

// There returns what the host does not know.
func (*valuesWorker) There() any { return valuesThere{3} }

// Grow returns a chain of so many links, or one that never ends.
func (*valuesWorker) Grow(links int) *valuesChain { return valuesGrown(links) }

// Stuck returns the same in a channel's company.
func (*valuesWorker) Stuck() any { return make(chan int) }

// Deref takes for granted that there is something.
func (*valuesWorker) Deref(b valuesBox) int { return *b.Pointer }

// Make returns a value that misbehaves on its way.
func (*valuesWorker) Make(encode, decode string) valuesFragile {
	return valuesFragile{Encode: encode, Decode: decode}
}

// Odd returns an error that cannot cross as it is.
func (*valuesWorker) Odd() error { return &valuesOddError{Detail: valuesLeaky{N: 5}} }

// Join joins any number of texts.
func (*valuesWorker) Join(by string, texts ...string) string { return strings.Join(texts, by) }

// Zeros returns so many bytes.
func (*valuesWorker) Zeros(n int) []byte { return make([]byte, n) }

// Taken returns how much memory the process has asked for, in bytes.
func (*valuesWorker) Taken() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

// Keep keeps its argument beyond the call.
func (w *valuesWorker) Keep(b []byte) { w.kept = b }

// Kept returns a copy of what was kept.
func (w *valuesWorker) Kept() []byte { return bytes.Clone(w.kept) }

// Hold keeps its argument and looks at it when the gate has let it go.
func (w *valuesWorker) Hold(b []byte) (string, error) {
	_, err := childtest.WaitAt(context.Background(), w.gate, "hold")
	return string(b), err
}

// Print writes to the standard output in the ways that there are.
func (*valuesWorker) Print(text string) {
	fmt.Println("fmt: " + text)
	_, _ = os.Stdout.WriteString("os: " + text + "\n") // the test looks for it
	_, _ = os.NewFile(1, "by its number").WriteString("descriptor: " + text + "\n")
}

// Flood writes so many lines of a kilobyte to the standard error.
func (*valuesWorker) Flood(lines int) {
	line := strings.Repeat("f", 1023) + "\n"
	for range lines {
		_, _ = os.Stderr.WriteString(line) // the call says when it has come through
	}
}

// valuesGrown is a chain of so many links. One of none contains itself.
func valuesGrown(links int) *valuesChain {
	if links == 0 {
		c := &valuesChain{V: 1}
		c.Next = c
		return c
	}
	var c *valuesChain
	for i := range links {
		c = &valuesChain{V: i, Next: c}
	}
	return c
}
