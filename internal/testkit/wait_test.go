package testkit_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor/internal/testkit"
)

func TestReceive(t *testing.T) {
	c := make(chan int, 1)
	c <- 3
	require.Equal(t, 3, testkit.Receive(t, c, "a number"))
	close(c)
	require.Zero(t, testkit.Receive(t, c, "the end"))
	testkit.Closed(t, c, "the end")
	full := make(chan int, 1)
	full <- 4
	complaints := runFake(t, func(t testing.TB) { testkit.Closed(t, full, "the channel") })
	require.Equal(t, []string{"4 came instead of the end: the channel"}, complaints)
}

func TestUntil(t *testing.T) {
	looks := 0
	testkit.Until(t, "three looks", func() bool { looks++; return looks == 3 })
	require.Equal(t, 3, looks)
}

func TestWithin(t *testing.T) {
	ran := false
	testkit.Within(t, time.Minute, func() { ran = true })
	require.True(t, ran)

	ending := make(chan struct{})
	complaints := runFake(t, func(t testing.TB) {
		testkit.Within(t, 10*time.Millisecond, func() { <-ending })
	})
	close(ending)
	require.Len(t, complaints, 1)
	require.Contains(t, complaints[0], "not done within")
	require.Contains(t, complaints[0], "TestWithin", "the stacks")
}

func TestWithinOfFailure(t *testing.T) {
	complaints := runFake(t, func(t testing.TB) {
		testkit.Within(t, time.Minute, func() {
			t.Errorf("inside")
			runtime.Goexit() // as FailNow of a real test does
		})
	})
	require.Equal(t, []string{"inside", "FailNow"}, complaints, "the failure goes on outside")
}

func TestContext(t *testing.T) {
	deadline, ok := testkit.Context(t).Deadline()
	require.True(t, ok)
	require.WithinDuration(t, time.Now().Add(testkit.Limit), deadline, time.Second)
}
