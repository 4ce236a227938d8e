// Command kbench is a load generator and benchmarking suite for Apache Kafka.
package main

import "os"

func main() { os.Exit(execute(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
