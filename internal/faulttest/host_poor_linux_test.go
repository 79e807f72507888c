package faulttest_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/workerlink/supervisor"
	"github.com/workerlink/supervisor/internal/testkit"
)

// poorHost sends so many requests as its argument says to each of three children, small and large ones, and reports what
// is not as it should be. At the end of its standard input it stops them in order.
var poorHost = testkit.Helper("poor host", func() {
	ctx := context.Background()
	n, err := strconv.Atoi(os.Args[1])
	var sup *supervisor.Supervisor
	if err == nil {
		sup, err = hostWork(ctx, n)
	}
	say(hostReport{Text: []string{"as it should be"}}, err)
	awaitWord()
	if sup != nil {
		if err := sup.Shutdown(ctx); err != nil {
			panic(err)
		}
	}
})

func hostWork(ctx context.Context, n int) (*supervisor.Supervisor, error) {
	sup, err := supervisor.New(supervisor.Process, supervisor.WithEvents(func(e supervisor.Event) {
		switch e.Kind {
		case supervisor.EventStarted, supervisor.EventStopped, supervisor.EventShutdown:
		default:
			panic(fmt.Sprintf("event %+v", e))
		}
	}))
	if err != nil {
		return nil, err
	}
	for _, kind := range []supervisor.ChildType{supervisor.Process, supervisor.Process, supervisor.Goroutine} {
		if _, err := sup.Register(ctx, newGuest, supervisor.WithType(kind)); err != nil {
			return sup, err
		}
	}
	if err := sup.StartLink(ctx); err != nil {
		return sup, err
	}
	sizes := []int{1, 100, 64 << 10}
	var requests []supervisor.SendPayload
	for i := range n {
		for id := range 3 {
			p := supervisor.NewSendPayload(id, "Echo", strings.Repeat("x", sizes[i%len(sizes)]))
			if err := sup.Send(ctx, p); err != nil {
				return sup, err
			}
			requests = append(requests, p)
		}
	}
	replies, err := sup.RecvAll(ctx, requests)
	if err != nil {
		return sup, err
	}
	lives := make(map[int]uint64)
	for i, r := range replies {
		if r.Data != requests[i].Args[0] {
			return sup, fmt.Errorf("reply %d is another's", i)
		}
		if life := lives[r.ProcID]; life != 0 && life != r.Incarnation {
			return sup, fmt.Errorf("child %d had lives %d and %d", r.ProcID, life, r.Incarnation)
		}
		lives[r.ProcID] = r.Incarnation
	}
	return sup, nil
}
