"""Problems whose kinks stand in the program, and the solvers that they are given to."""
