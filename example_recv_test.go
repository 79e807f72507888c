package supervisor_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/workerlink/supervisor"
)

func ExampleSupervisor_Send() {
	ctx := context.Background()
	sup := running(supervisor.Goroutine, 10)
	defer sup.Close()
	req := supervisor.NewSendPayload(0, "Deposit", 5)
	if err := sup.Send(ctx, req); err != nil { // nothing was sent, and no reply comes
		fmt.Println(err)
		return
	}
	reply, err := sup.Recv(ctx)
	fmt.Println(reply.ReqID == req.ReqID, reply.Data, err)
	// Output: true 15 <nil>
}

func ExampleSupervisor_RecvAll() {
	ctx := context.Background()
	sup := running(supervisor.Goroutine, 1, 10, 100)
	defer sup.Close()
	var reqs []supervisor.SendPayload
	for id := range 3 {
		req := supervisor.NewSendPayload(id, "Withdraw", 10)
		if err := sup.Send(ctx, req); err != nil {
			fmt.Println(err)
			return
		}
		reqs = append(reqs, req)
	}
	replies, err := sup.RecvAll(ctx, reqs, supervisor.IgnoreErr())
	for _, p := range replies { // in the order of the requests
		fmt.Println(p.ProcID, p.Data, errors.Is(p.Err, ErrOverdrawn))
	}
	fmt.Println(err)
	// Output:
	// 0 <nil> true
	// 1 0 false
	// 2 90 false
	// <nil>
}

func ExampleOnReply() {
	ctx := context.Background()
	sup := running(supervisor.Goroutine, 0)
	defer sup.Close()
	req := supervisor.NewSendPayload(0, "Withdraw", 30)
	if err := sup.Send(ctx, req); err != nil {
		fmt.Println(err)
		return
	}
	// What is too little is made up for, and the withdrawal is tried again.
	retry := func(w *supervisor.Waiting, p supervisor.RecvPayload) error {
		switch {
		case errors.Is(p.Err, ErrOverdrawn):
			fmt.Println("not enough")
			return errors.Join(w.Send(supervisor.NewSendPayload(0, "Deposit", 50)),
				w.Send(supervisor.NewSendPayload(0, "Withdraw", 30)))
		default:
			fmt.Println(p.Method, p.Data)
			return p.Err
		}
	}
	_, err := sup.RecvAll(ctx, []supervisor.SendPayload{req}, supervisor.IgnoreErr(), supervisor.OnReply(retry))
	fmt.Println(err)
	// Output:
	// not enough
	// Deposit 50
	// Withdraw 20
	// <nil>
}

func ExampleSupervisor_Cancel() {
	ctx := context.Background()
	sup := running(supervisor.Goroutine, 0)
	defer sup.Close()
	req := supervisor.NewSendPayload(0, "Wait")
	if err := sup.Send(ctx, req); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(sup.Cancel(req.ReqID)) // its handler's context ends
	_, err := sup.Recv(ctx)
	fmt.Println(errors.Is(err, supervisor.ErrCanceled))
	// Output:
	// <nil>
	// true
}
