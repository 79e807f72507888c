package supervisor

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/workerlink/supervisor/internal/dispatch"
	"github.com/workerlink/supervisor/internal/inside"
)

// What the other packages of this module may use of this one beside its public surface.
func init() {
	inside.Types = types
	inside.SetTable = setTable
	inside.Build = func(ctx context.Context, spec any) (any, error) {
		s, ok := spec.(Spec)
		if !ok {
			return nil, fmt.Errorf("%w: %T is no Spec", ErrBadArgs, spec)
		}
		d, err := definitions.find(s.name)
		if err != nil {
			return nil, err
		}
		if d.declared {
			return nil, fmt.Errorf("%w: factory %q lives in another binary", ErrBadArgs, s.name)
		}
		return buildObject(ctx, d, s, nil)
	}
	inside.Inspect = func(options any) (inside.Child, error) {
		opts, ok := options.([]ChildOption)
		if !ok {
			return inside.Child{}, fmt.Errorf("%w: %T are no child options", ErrBadArgs, options)
		}
		c, err := newChildConfig(Process, false, nil, opts)
		return inside.Child{
			Process: c.kind == Process, Concurrency: c.handlers.concurrency, Copies: c.handlers.copy,
			StartTimeout: c.startTimeout, Text: c.text(),
		}, err
	}
}

func setTable(factory string, table func() (*dispatch.Table, error)) {
	d, err := definitions.find(factory)
	if err != nil {
		panic(err.Error())
	}
	d.methods = onceMethods(table)
}

// text is the same for what means the same; files and writers are the same if
// they are identical.
func (p Proc) text() string {
	attr := p.SysProcAttr
	p.SysProcAttr = nil
	for _, list := range []*[]string{&p.Args, &p.Env} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	if len(p.ExtraFiles) == 0 {
		p.ExtraFiles = nil
	}
	text := fmt.Sprintf("%#v", p)
	if attr != nil {
		fields, _ := json.Marshal(attr) // numbers, texts and lists of them, behind pointers, too
		text += " " + string(fields)
	}
	return text
}

// text is the same for configurations that mean the same.
func (c *childConfig) text() string {
	plain := *c
	plain.proc, plain.share = nil, nil
	text := fmt.Sprintf("%#v", plain)
	if c.proc != nil {
		text += " " + c.proc.text()
	}
	if c.share != nil {
		text += fmt.Sprintf(" %#v", *c.share)
	}
	return text
}
