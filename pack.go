package supervisor

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/workerlink/supervisor/internal/wire"
)

// packSelfContained codes values so that they can be decoded without what came
// before: for arguments of factories, errors, copies, and other binaries.
func packSelfContained(codecs []*wire.Codec, vals []any) ([]byte, error) {
	if codecs == nil {
		codecs = make([]*wire.Codec, len(vals))
	}
	body, err := wire.Packing{Registry: types, SelfContained: true}.Prepare(codecs, vals)
	if err != nil {
		return nil, err
	}
	return body.Bytes(), nil
}

// unpackSelfContained is the reverse. It may run user code.
func unpackSelfContained(b []byte, codecs []*wire.Codec) ([]any, error) {
	vals, err := wire.NewDecoder(types, wire.DefaultLimit).Values(wire.Header{}, b, false, codecs, nil)
	if err != nil {
		return nil, err
	}
	for i, v := range vals {
		if d, ok := v.(*wire.Deferred); ok {
			if vals[i], err = d.Decode(); err != nil {
				return nil, err
			}
		}
	}
	return vals, nil
}

// rawValue is the result of a worker in another binary whose type this binary
// does not know: [Value] and [Call] decode it into the type that they are asked for.
type rawValue struct{ raw *wire.Raw }

func (r *rawValue) decode(t reflect.Type) (any, error) {
	v, err := r.raw.Decode(t)
	switch {
	case err == nil:
		return v, nil
	case errors.Is(err, ErrDecode):
		return nil, fmt.Errorf("%w: into %v", err, t)
	default: // t itself is at fault
		return nil, fmt.Errorf("%w: into %v: %s", ErrDecode, t, bare(err))
	}
}

func (r *rawValue) String() string {
	return "value of a type that this binary does not know; use supervisor.Value"
}
