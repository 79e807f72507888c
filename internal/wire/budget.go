package wire

import "fmt"

// MemoryFactor says how many times the limit of a payload the values of one may take once decoded.
const MemoryFactor = 4

// budget is the memory that the values of a message may still take, in bytes.
type budget struct{ left, all int64 }

func newBudget(limit int) budget {
	n := MemoryFactor * int64(limit)
	return budget{n, n}
}

func (b *budget) take(n int64) { b.left -= n }

func (b *budget) err() error {
	if b.left < 0 {
		return fmt.Errorf("takes more than %d bytes of memory", b.all)
	}
	return nil
}
