package childtest

import (
	"fmt"
	"strings"
	"time"

	"github.com/workerlink/supervisor"
)

// Point is a plain struct.
type Point struct{ X, Y int }

// Tree can contain itself.
type Tree struct {
	Name string
	Kids []*Tree
}

// Grade is a named number.
type Grade uint8

// Options is what keyword arguments fill.
type Options struct {
	Size    int
	Tags    []string
	Verbose bool
}

// Stranger is in no registry.
type Stranger struct{ N int }

// Secret loses something when it is copied.
type Secret struct {
	Known  int
	hidden int
}

var _ = Secret{hidden: 1}

func init() {
	supervisor.RegisterType[Point]()
	supervisor.RegisterType[Tree]()
}

// Int returns its argument, as do the other methods that are named for a type.
func (w *Worker) Int(v int) int { return v }

// Int64 returns its argument.
func (w *Worker) Int64(v int64) int64 { return v }

// Byte returns its argument.
func (w *Worker) Byte(v uint8) uint8 { return v }

// Uint64 returns its argument.
func (w *Worker) Uint64(v uint64) uint64 { return v }

// Float returns its argument.
func (w *Worker) Float(v float64) float64 { return v }

// Bool returns its argument.
func (w *Worker) Bool(v bool) bool { return v }

// Text returns its argument.
func (w *Worker) Text(v string) string { return v }

// Bytes returns its argument.
func (w *Worker) Bytes(v []byte) []byte { return v }

// Floats returns its argument.
func (w *Worker) Floats(v []float32) []float32 { return v }

// Texts returns its argument.
func (w *Worker) Texts(v []string) []string { return v }

// Map returns its argument.
func (w *Worker) Map(v map[string]int) map[string]int { return v }

// Struct returns its argument.
func (w *Worker) Struct(v Point) Point { return v }

// Pointer returns its argument.
func (w *Worker) Pointer(v *Point) *Point { return v }

// Tree returns its argument.
func (w *Worker) Tree(v *Tree) *Tree { return v }

// Grade returns its argument.
func (w *Worker) Grade(v Grade) Grade { return v }

// Time returns its argument.
func (w *Worker) Time(v time.Time) time.Time { return v }

// Duration returns its argument.
func (w *Worker) Duration(v time.Duration) time.Duration { return v }

// Any returns its argument.
func (w *Worker) Any(v any) any { return v }

// Secret returns what of its argument arrived.
func (w *Worker) Secret(v Secret) int { return v.Known + v.hidden }

// Sum adds any number of numbers.
func (w *Worker) Sum(first int, rest ...int) int {
	for _, n := range rest {
		first += n
	}
	return first
}

// Nothing takes and returns nothing.
func (w *Worker) Nothing() {}

// Both returns a result and no error.
func (w *Worker) Both(v string) (string, error) { return "<" + v + ">", nil }

// Only returns no error.
func (w *Worker) Only() error { return nil }

// Configure shows the options that it gets.
func (w *Worker) Configure(name string, o Options) string {
	return fmt.Sprintf("%s: size %d, tags %s, verbose %v", name, o.Size, strings.Join(o.Tags, "+"), o.Verbose)
}

// Scribble changes its argument.
func (w *Worker) Scribble(v []byte) { v[0] = 'X' }

// Channel returns what cannot leave a process.
func (w *Worker) Channel() any { return make(chan int) }

// Strange returns a type that is in no registry.
func (w *Worker) Strange() any { return Stranger{N: 1} }

// Zeros returns a text of n zeros.
func (w *Worker) Zeros(n int) string { return strings.Repeat("0", n) }
