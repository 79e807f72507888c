package childtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/workerlink/supervisor"
)

var errorRules = []rule{
	{"a handler's error keeps its text and its registered identities", errorIdentities},
	{"an error that says it is a registered one is it", errorsByMethod},
	{"an error that is not registered keeps its text and type", privateErrors},
	{"an error is a reply like any other", errorsAreReplies},
}

func errorIdentities(t *testing.T, k Kind) {
	r := Start(t, k)
	for _, row := range []struct {
		fault, text string
		is          []error
	}{
		{"plain", "just a text", nil},
		{"sentinel", ErrSentinel.Error(), []error{ErrSentinel}},
		{"wrapped", "outer: inner: " + ErrSentinel.Error(), []error{ErrSentinel}},
		{"joined", "one\n" + ErrSentinel.Error() + "\ntwo: " + ErrOther.Error(), []error{ErrSentinel, ErrOther}},
		{"of io", "read: unexpected EOF", []error{io.ErrUnexpectedEOF}},
		{"of fs", "open /no/such/file: " + syscall.ENOENT.Error(), nil},
		{"canceled", "context canceled", []error{context.Canceled}},
		{"deadline", "too slow: context deadline exceeded", []error{context.DeadlineExceeded}},
	} {
		_, err := supervisor.Call[int](r.Ctx, r.Sup, r.ID, "Fail", row.fault)
		e := CallErrorOf(t, err, r.ID, "Fail")
		require.False(t, e.Unexecuted, "%s: %v", row.fault, e)
		require.Equal(t, row.text, e.Err.Error(), row.fault)
		for _, all := range []error{ErrSentinel, ErrOther, io.ErrUnexpectedEOF, context.Canceled, context.DeadlineExceeded} {
			wanted := false
			for _, is := range row.is {
				wanted = wanted || is == all //nolint:errorlint // the very values of the table
			}
			require.Equal(t, wanted, errors.Is(err, all), "%s: errors.Is(err, %q)", row.fault, all)
		}
		var remote *supervisor.RemoteError
		require.Equal(t, k.Can.Remote, errors.As(err, &remote), "%s: is a RemoteError", row.fault)
		require.NotErrorIs(t, err, supervisor.ErrCanceled, "%s: it is the handler's, not ours", row.fault)
		require.NotErrorIs(t, err, supervisor.ErrTimeout, "%s: it is the handler's, not ours", row.fault)
	}
	for _, fault := range []string{"typed", "wrapped type"} {
		_, err := supervisor.Call[int](r.Ctx, r.Sup, r.ID, "Fail", fault)
		var code *CodeError
		require.ErrorAs(t, err, &code, fault)
		require.Equal(t, faultCode(fault), *code, fault)
	}
}

// The error of os.Open holds a system error number, whose Is method says that it is fs.ErrNotExist.
func errorsByMethod(t *testing.T, k Kind) {
	r := Start(t, k)
	_, err := supervisor.Call[int](r.Ctx, r.Sup, r.ID, "Fail", "of fs")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NotErrorIs(t, err, fs.ErrExist)
}

func faultCode(fault string) CodeError {
	var code *CodeError
	if !errors.As(faults[fault](), &code) {
		panic("no CodeError in " + fault)
	}
	return *code
}

func privateErrors(t *testing.T, k Kind) {
	r := Start(t, k)
	_, err := supervisor.Call[int](r.Ctx, r.Sup, r.ID, "Fail", "private")
	require.ErrorContains(t, err, "p: "+ErrPrivate.Error())
	require.Equal(t, !k.Can.Remote, errors.Is(err, ErrPrivate), "errors.Is of what is not registered")
	_, err = supervisor.Call[int](r.Ctx, r.Sup, r.ID, "Fail", "private type")
	require.ErrorContains(t, err, "private 5")
	var private PrivateError
	require.Equal(t, !k.Can.Remote, errors.As(err, &private), "errors.As of what is not registered")
	if !k.Can.Remote {
		return
	}
	var remote *supervisor.RemoteError
	require.ErrorAs(t, err, &remote)
	require.Equal(t, fmt.Sprintf("%T", private), lastElement(remote.Type), "its type is named, with its package path: %s", remote.Type)
	require.Equal(t, "private 5", remote.Text)
}

// lastElement is a type's name as %T shows it.
func lastElement(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[i+1:]
		}
	}
	return path
}

func errorsAreReplies(t *testing.T, k Kind) {
	r := Start(t, k)
	bad := r.Send(t, r.ID, "Fail", "sentinel")
	p, err := r.Sup.Recv(r.Ctx)
	require.ErrorIs(t, err, ErrSentinel)
	_ = CallErrorOf(t, err, r.ID, "Fail")
	require.Equal(t, bad.ReqID, p.ReqID)
	require.Equal(t, err, p.Err, "Recv's error is the payload's")
	require.Nil(t, p.Data, "the result beside an error is dropped")
	require.NotZero(t, p.Incarnation)
	_, err = supervisor.Value[int](p)
	require.ErrorIs(t, err, ErrSentinel, "Value of an error reply")
	r.Send(t, r.ID, "Fail", "sentinel")
	p, err = r.Sup.Recv(r.Ctx, supervisor.IgnoreErr())
	require.NoError(t, err)
	require.ErrorIs(t, p.Err, ErrSentinel)
	r.Fine(t, r.ID)
}
