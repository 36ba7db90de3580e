// Package bench measures the decoder as a whole in memory: BenchmarkDecode, and BenchmarkWalk for the least that any decoder has
// to do. compare and live are programs.
package bench
