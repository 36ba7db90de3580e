// Package alarm is a timer that is precise to microseconds where the operating system
// lets it be.
package alarm
