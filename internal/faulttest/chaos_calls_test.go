package faulttest_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/workerlink/supervisor"
)

// chaosMay is what a request may end with: what its handler does, what is done to its child, and what its caller does to it.
func chaosMay(place int, how, callers fate) fate {
	may := how | callers | fateClosed | fateRestarted | fateStopped
	if chaosPlaces[place].kind == supervisor.Process {
		may |= fateExit
	}
	return may
}

// chaosRefusal is what it may be refused as.
func chaosRefusal(place int, callers fate) fate {
	may := callers | fateClosed | fateNoChild
	if chaosPlaces[place].kind == supervisor.Process {
		may |= fateExit | fateLimit
	}
	return may
}

// request opens the page of a request.
func (c *chaos) request(id string, r chaosToil, callers fate) supervisor.SendPayload {
	if chaosPlaces[r.Place].kind == supervisor.Goroutine && (r.How == byExit || r.How == byCrash) {
		r.How = byPanic // it would be the end of us all
	}
	p := supervisor.NewSendPayload(c.at(r.Place), r.Method)
	p.ReqID, p.Timeout = id, r.Timeout
	switch r.Method {
	case "Carry":
		p.Args = []any{id, toilLoad(id, r.Size)}
	case "Shout":
		p.Args = []any{id, r.Size, r.Line}
	default:
		p.Args = []any{id, r.Takes, r.How}
	}
	page := toilPage{child: p.ProcID, method: r.Method, load: r.Size, may: chaosMay(r.Place, fateOfToil(r.How), callers|r.callers())}
	c.book.open(id, page, "%+v", r)
	return p
}

// callers is what a request's own time limit adds to its fate.
func (r *chaosToil) callers() fate {
	if r.Timeout > 0 && r.Timeout < time.Minute {
		return fateTimeout
	}
	return 0
}

// call does one operation of a caller.
func (c *chaos) call(number, n int, op chaosOp) {
	id := func(i int) string { return fmt.Sprintf("c%d-%d-%d", number, n, i) }
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	callers := fate(0)
	if op.Limit > 0 {
		ctx, cancel = context.WithTimeout(ctx, op.Limit)
		callers = fateTimeout
	}
	defer cancel()
	switch op.Do {
	case chaosCall:
		r := op.Requests[0]
		p := c.request(id(0), r, callers|chaosRefusal(r.Place, callers))
		reply, _ := c.sup.Do(ctx, p) // its error is in the reply
		c.book.answered(p.ReqID, reply)
	case chaosGo:
		c.future(ctx, id(0), op, callers)
	default:
		if op.Do == chaosCancel {
			callers |= fateCanceled
		}
		c.exchange(ctx, op, id, callers)
	}
}

// future is one request by Go.
func (c *chaos) future(ctx context.Context, id string, op chaosOp, callers fate) {
	r := op.Requests[0]
	r.Timeout = 0 // Go has none
	if op.Cancel {
		callers |= fateCanceled
	}
	p := c.request(id, r, callers|chaosRefusal(r.Place, callers))
	f := supervisor.Go[any](ctx, c.sup, p.ProcID, p.Method, p.Args...)
	c.book.handed(id, nil, 0) // a refusal comes by the future
	if op.Cancel {
		f.Cancel()
	}
	v, err := f.Result(context.Background())
	reply := supervisor.RecvPayload{ProcID: p.ProcID, Data: v, Err: err, Incarnation: chaosLifeOf(v)}
	c.book.verdict(id, reply)
}

// chaosLifeOf is the incarnation in a receipt. Go does not return it otherwise.
func chaosLifeOf(v any) uint64 {
	text, _ := v.(string)
	if b, ok := v.([]byte); ok {
		text = string(b[max(0, len(b)-30):])
	}
	life, _ := strconv.ParseUint(text[strings.LastIndexByte(text, '@')+1:], 10, 64) // an odd one shows as a wrong value
	return life
}

// exchange sends some requests and takes replies.
func (c *chaos) exchange(ctx context.Context, op chaosOp, id func(int) string, callers fate) {
	var sent []supervisor.SendPayload
	sendOne := func(i int, r chaosToil, send func(supervisor.SendPayload) error) {
		p := c.request(id(i), r, callers)
		if c.book.handed(p.ReqID, send(p), chaosRefusal(r.Place, callers|r.callers())) {
			p.Args = nil
			sent = append(sent, p)
		}
	}
	for i, r := range op.Requests {
		sendOne(i, r, func(p supervisor.SendPayload) error { return c.sup.Send(ctx, p) })
	}
	switch op.Do {
	case chaosRecv:
		c.recv(ctx, len(sent))
		return
	case chaosCancel:
		var ids []string
		for _, p := range sent[:len(sent)/2] {
			ids = append(ids, p.ReqID)
		}
		if got := fateOf(c.sup.Cancel(ids...)); got&(fateValue|fateNoRequest) == 0 {
			c.book.complain("Cancel: %v", got)
		}
	}
	if op.Do != chaosOnReply {
		c.recvAll(ctx, sent)
		return
	}
	next := len(op.Requests)
	c.recvAll(ctx, sent, supervisor.OnReply(func(w *supervisor.Waiting, p supervisor.RecvPayload) error {
		if !c.verdict(p) {
			return nil
		}
		if next < 2*len(op.Requests) {
			sendOne(next, op.Requests[next-len(op.Requests)], w.Send)
			next++
		}
		return nil
	}))
}

// verdict records a reply that came through the inbox. The entry of one whose reply somebody's Recv had taken before is none.
func (c *chaos) verdict(p supervisor.RecvPayload) bool {
	if fateOf(p.Err)&(fateNoRequest|fatePending) != 0 {
		c.book.note(p.ReqID, "not to be had: %v", p.Err)
		return false
	}
	c.book.verdict(p.ReqID, p)
	return true
}

// recv takes some replies, whoever sent the requests.
func (c *chaos) recv(ctx context.Context, n int) {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond) // others may take what is ours
	defer cancel()
	for range n {
		p, err := c.sup.Recv(ctx, supervisor.IgnoreErr())
		if err != nil {
			if got := fateOf(err); got&(fateTimeout|fateClosed) == 0 {
				c.book.complain("Recv: %v", err)
			}
			return
		}
		c.book.verdict(p.ReqID, p)
	}
}

// recvAll takes the replies to what was sent. If somebody's Recv has taken one of them the rest is taken one by one.
func (c *chaos) recvAll(ctx context.Context, sent []supervisor.SendPayload, opts ...supervisor.RecvOption) {
	got, err := c.sup.RecvAll(ctx, sent, append(opts, supervisor.IgnoreErr())...)
	switch f := fateOf(err); {
	case f == fateNoRequest && len(sent) > 1:
		for i := range sent {
			c.recvAll(ctx, sent[i:i+1], opts...)
		}
		return
	case f&(fateValue|fateNoRequest|fateClosed) == 0:
		c.book.complain("RecvAll with IgnoreErr: %v", err)
	}
	if len(opts) > 0 {
		return // OnReply has them
	}
	for _, p := range got {
		c.verdict(p)
	}
}
