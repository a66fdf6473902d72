"""Behind `shift`: rows with their covariates, and the kernel that spans the tilts."""
