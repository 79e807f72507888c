package bench

import "sync"

// openGoroutines is the plain way within one process: so many goroutines that
// take functions from a channel, as errgroup with a limit, which cannot be
// changed at work either.
func openGoroutines(workers int) (*TaskPool, error) {
	work := make(chan func()) // closed by Close
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for f := range work {
				f()
			}
		})
	}
	return &TaskPool{
		Submit: func(n int) (func() (int, error), error) {
			value := make(chan int, 1)
			work <- func() { value <- n }
			return func() (int, error) { return <-value, nil }, nil
		},
		Map: func(more func() bool) (int, error) { return mapOver(work, more), nil },
		Close: func() error {
			close(work)
			running.Wait()
			return nil
		},
	}, nil
}

// mapOver counts the values as they come, in any order.
func mapOver(work chan<- func(), more func() bool) (count int) {
	values := make(chan int, 64) // closed by the goroutine that reads the input
	var reader, open sync.WaitGroup
	reader.Go(func() {
		for n := 0; more(); n++ {
			open.Add(1)
			work <- func() {
				values <- n
				open.Done()
			}
		}
		open.Wait()
		close(values)
	})
	for range values {
		count++
	}
	reader.Wait()
	return count
}
