//go:build !unix

package pipe

// tryWrite leaves everything to the goroutine that may wait.
func (w *Writer) tryWrite([]byte) (n int, full bool, err error) { return 0, true, nil }
