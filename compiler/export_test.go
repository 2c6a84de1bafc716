package compiler

// Update reports whether the tests write what the compiler does now into testdata.
func Update() bool { return *update }
