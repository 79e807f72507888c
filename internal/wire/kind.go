package wire

import "strconv"

// Kind says what a frame is.
type Kind uint8

// The kinds of frames. Numbers 9 to 13 and 18 are reserved, see PROTOCOL.md; 0 is no kind.
const (
	KindHello   Kind = 1 // host to worker, first frame: [Hello]
	KindReady   Kind = 2 // worker to host: [Ready]
	KindFailed  Kind = 3 // worker to host: [Failed]
	KindRequest Kind = 4 // host to worker: prefix and arguments
	KindReply   Kind = 5 // worker to host: prefix and result or error
	KindChunk   Kind = 6 // either way: next piece of the payload under way
	KindCancel  Kind = 7 // host to worker: the request is not wanted any more; no payload
	KindStop    Kind = 8 // host to worker: no more requests, end orderly; no payload

	KindAskStacks Kind = 14 // host to worker: what are your goroutines doing; no payload
	KindStacks    Kind = 15 // worker to host: their stacks as text
	KindPing      Kind = 16 // host to worker: give a sign of life under this request number; no payload
	KindPong      Kind = 17 // worker to host: it is well; no payload
	KindUnwell    Kind = 19 // worker to host: it is not, an [ErrorNode]
	KindEnded     Kind = 20 // worker to host: the life ends by itself; an [ErrorNode] with FlagError, else nothing
	KindBegun     Kind = 21 // worker to host: the handler of a watched request has begun; no payload
)

// Flags refine a kind. Each kind has its own set; others are refused.
type Flags uint16

// The flags. Bits 8 to 10 are reserved, see PROTOCOL.md.
const (
	FlagMore     Flags = 1 << 0 // further pieces of this payload follow in Chunk frames
	FlagError    Flags = 1 << 1 // Reply and Ended: the body is an [ErrorNode]
	FlagTimings  Flags = 1 << 2 // Reply: the prefix has the times queued and run; Request: it shall
	FlagDeadline Flags = 1 << 3 // Request: the prefix has the remaining time
	FlagNamed    Flags = 1 << 4 // Request: the prefix has the method's name, Method is 0
	FlagKwargs   Flags = 1 << 5 // Request: the last value is a map[string]any of keyword arguments
	FlagAttr     Flags = 1 << 6 // Request: read an attribute rather than call
	FlagRefused  Flags = 1 << 7 // Reply: the request was not and will never be executed

	FlagWatch Flags = 1 << 11 // Request: Begun shall say when the handler begins
)

var kinds = [...]struct {
	name    string
	flags   Flags
	control bool
}{
	KindHello:   {"Hello", FlagMore, false},
	KindReady:   {"Ready", FlagMore, false},
	KindFailed:  {"Failed", FlagMore, false},
	KindRequest: {"Request", FlagMore | FlagTimings | FlagDeadline | FlagNamed | FlagKwargs | FlagAttr | FlagWatch, false},
	KindReply:   {"Reply", FlagMore | FlagError | FlagTimings | FlagRefused, false},
	KindChunk:   {"Chunk", FlagMore, false},
	KindCancel:  {"Cancel", 0, true},
	KindStop:    {"Stop", 0, true},

	KindAskStacks: {"AskStacks", 0, true},
	KindStacks:    {"Stacks", FlagMore, false},
	KindPing:      {"Ping", 0, true},
	KindPong:      {"Pong", 0, true},
	KindUnwell:    {"Unwell", FlagMore, false},
	KindEnded:     {"Ended", FlagMore | FlagError, false},
	KindBegun:     {"Begun", 0, true},
}

// String returns the kind's name, or its number if it has none.
func (k Kind) String() string {
	if int(k) < len(kinds) && kinds[k].name != "" {
		return kinds[k].name
	}
	return "Kind(" + strconv.Itoa(int(k)) + ")"
}

// Control reports whether frames of the kind may come between the pieces of a payload.
func (k Kind) Control() bool { return int(k) < len(kinds) && kinds[k].control }

// flags returns the flags that the kind may carry and whether the kind is known at all.
func (k Kind) flags() (Flags, bool) {
	if int(k) >= len(kinds) || kinds[k].name == "" {
		return 0, false
	}
	return kinds[k].flags, true
}
