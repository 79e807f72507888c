package executor

import (
	"os"
	"strconv"
)

const (
	// depthVariable tells a worker how deep it is.
	depthVariable    = "SUPERVISOR_EXECUTOR_DEPTH"
	maxDepthVariable = "SUPERVISOR_MAX_DEPTH"
	defaultMaxDepth  = 10
)

// depth is how many executors' workers this process is inside of.
var depth = number(depthVariable, 0)

func maxDepth() int { return number(maxDepthVariable, defaultMaxDepth) }

// number is the value of an environment variable, or otherwise if it is none.
func number(variable string, otherwise int) int {
	n, err := strconv.Atoi(os.Getenv(variable))
	if err != nil || n < 0 {
		return otherwise
	}
	return n
}
