// Command table measures calls in all ways and under all loads of package
// bench, and tasks likewise, and prints tables of Markdown.
package main

import (
	"flag"
	"fmt"
	"log"
	"runtime"
	"time"

	"github.com/workerlink/supervisor/bench"
)

func main() {
	bench.Init()
	log.SetFlags(0)
	repeats := flag.Int("repeats", 5, "how many turns to take the median of")
	each := flag.Duration("time", 300*time.Millisecond, "how long each load runs in each turn")
	flag.Parse()
	if *repeats < 1 || *each <= 0 {
		log.Fatal("table: -repeats and -time must be positive")
	}
	results, err := bench.Measure(bench.Ways(), bench.Loads(), *repeats, *each)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s, %s/%s, %d processors; medians [least–greatest] of %d turns of %v\n\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0), *repeats, *each)
	fmt.Println(results.Markdown())
	tasks, err := bench.MeasureTasks(bench.TaskWays(), bench.Trials(), *repeats, *each)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(tasks.Markdown())
}
