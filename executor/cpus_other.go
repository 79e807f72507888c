//go:build !linux

package executor

func affinity() int { return 0 }

func cgroupQuota() int { return 0 }
