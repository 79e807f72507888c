// Command otherprogram is a worker program whose factories and types the host does not know.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/workerlink/supervisor"
)

// Parcel is a type of this program alone.
type Parcel struct {
	Weight int
	Labels []string
}

// Depot is the object.
type Depot struct{ Number int }

// Double returns twice n.
func (d *Depot) Double(n int) int { return 2 * n }

// Pack returns a parcel.
func (d *Depot) Pack(weight int, labels []string) Parcel {
	return Parcel{Weight: weight, Labels: labels}
}

// Sum adds numbers.
func (d *Depot) Sum(numbers ...int) (sum int) {
	for _, n := range numbers {
		sum += n
	}
	return sum
}

// Weigh returns a parcel's weight in the depot's way.
func (d *Depot) Weigh(p Parcel) int { return p.Weight + d.Number }

// Lose fails.
func (d *Depot) Lose() error { return fmt.Errorf("depot %d: %w", d.Number, errors.New("parcel lost")) }

var _ = supervisor.DefineWith("childtest.Elsewhere", func(_ context.Context, number int) (*Depot, error) {
	return &Depot{Number: number}, nil
})

func main() {
	if os.Getenv("FORGET_INIT") == "" {
		supervisor.Init()
	}
	_, err := supervisor.New(supervisor.Process)
	fmt.Println("this is no worker", err)
}
